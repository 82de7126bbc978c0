;;; like scss
