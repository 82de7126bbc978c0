module shop
  implicit none
  integer, parameter :: limit = 10

  type :: price
    integer :: amount
  end type price

contains

  subroutine sell(p)
    type(price), intent(in) :: p
    print *, helper(p%amount)
  end subroutine sell

  function helper(x) result(y)
    integer, intent(in) :: x
    integer :: y
    y = x + 1
  end function helper

end module shop

program main
  use shop
  call sell(price(1))
end program main
