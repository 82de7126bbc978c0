-module(shop).
-export([sell/1, load/2]).
-include("shop.hrl").
-import(lists, [map/2]).

-define(LIMIT, 10).
-record(price, {amount, currency}).
-type name() :: atom().

%% Sells.
sell(0) ->
    free;
sell(Price) ->
    helper(Price).

load(Id, Default) ->
    map(fun(X) -> X + ?LIMIT end, [Id, Default]).

helper(X) when X > 1 ->
    X.
