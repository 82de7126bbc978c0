Import-Module Pester

class Price {
    [int] $Amount
    [string] $Currency

    [bool] IsFree() {
        return $this.Amount -eq 0
    }
}

enum State {
    Open
    Closed
}

# Sells.
function Invoke-Sell {
    param([int] $Price)
    Write-Output $Price
}

function Get-Shop($Id) {
    Invoke-Sell $Id
}
