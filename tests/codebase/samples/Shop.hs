{-# LANGUAGE GADTs #-}
module Shop (sell, Price (..)) where

import qualified Data.Map as Map
import Data.List (sortBy)

-- | A price.
data Price = Price
  { amount :: Int
  , currency :: String
  }
  deriving (Show)

newtype Name = Name String

type Handler = Price -> IO ()

class Repository r where
  find :: r -> Int -> Maybe Price
  close :: r -> IO ()

instance Repository Name where
  find _ i = Just (Price i "EUR")
  close _ = pure ()

-- | Sells.
sell :: Price -> Int -> Int
sell p 0 = amount p
sell p n = helper (amount p)
  where
    helper x = x + n

limit :: Int
limit = 10
