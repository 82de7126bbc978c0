#!/usr/bin/env bash
source ./common.sh

readonly LIMIT=10
export SHOP_NAME="corner"

# Sells one thing.
sell() {
  local price="$1"
  echo "$price"
}

function load {
  sell "$1"
}

function close() {
  exit 0
}

load "$@"
