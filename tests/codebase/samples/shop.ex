defmodule Shop.Price do
  @moduledoc "A price."
  alias Shop.Currency
  import Enum, only: [map: 2]
  use GenServer

  @limit 10
  defstruct [:amount, :currency]

  @doc "Compares."
  @spec compare(integer, integer) :: integer
  def compare(left, right) when left > right do
    helper(left - right)
  end

  def free, do: 0

  defp helper(x) do
    x + @limit
  end

  defmacro twice(x) do
    quote do: unquote(x) * 2
  end

  defmodule Inner do
    def deep(x), do: x
  end
end

defprotocol Shop.Show do
  def show(value)
end

defimpl Shop.Show, for: Integer do
  def show(value), do: Integer.to_string(value)
end
