(ns shop.core
  (:require [clojure.string :as str])
  (:import (java.util Date)))

(def limit 10)

(defn sell
  "Sells."
  [price]
  (str/upper-case (str price)))

(defn- helper [x] (inc x))

(defmacro unless [test body]
  `(if ~test nil ~body))

(defprotocol Repository
  (find-one [this id]))

(defrecord Price [amount currency])

(defmulti area :shape)

(defmethod area :circle [c]
  (* 3 (:r c)))
