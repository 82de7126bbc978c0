"""The fault campaign: kills, errors of the disk, power loss and hours of load, and the page that says what came of them."""
