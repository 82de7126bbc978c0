package Shop;

use strict;
use warnings;
use List::Util qw(max);

our $LIMIT = 10;

# Makes a shop.
sub new {
    my ($class, %options) = @_;
    return bless { %options }, $class;
}

sub sell {
    my ($self, $price) = @_;
    print max($price, $LIMIT);
}

package Shop::Item;

sub price {
    return 1;
}

1;
