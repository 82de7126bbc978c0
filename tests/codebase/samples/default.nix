{ pkgs ? import <nixpkgs> { } }:

let
  version = "1.0";
  build = name: pkgs.stdenv.mkDerivation { inherit name version; };
in
{
  shop = build "shop";
  helper = x: x + 1;
}
