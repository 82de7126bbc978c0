;;; like html
