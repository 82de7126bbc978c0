;;; like terraform
