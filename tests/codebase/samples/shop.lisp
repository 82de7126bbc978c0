(defpackage :shop (:use :cl))
(in-package :shop)

(defvar *limit* 10)
(defparameter *name* "shop")

(defun sell (price)
  "Sells."
  (helper price))

(defmacro unless2 (test &body body)
  `(if ,test nil (progn ,@body)))

(defclass price () ((amount :initarg :amount)))

(defmethod show ((p price))
  (print p))

(defstruct item name)
