(list_lit (defun (defun_header keyword: (defun_keyword) @_def function_name: (_) @name) (#eq? @_def "defmacro"))) @definition.macro
(list_lit (defun (defun_header keyword: (defun_keyword) @_def function_name: (_) @name) (#eq? @_def "defmethod"))) @definition.method
(list_lit (defun (defun_header function_name: (_) @name))) @definition.function
((list_lit . value: (sym_lit) @_def . value: (sym_lit) @name) @definition.class (#match? @_def "^(defclass|define-condition)$"))
((list_lit . value: (sym_lit) @_def . value: [(sym_lit) (list_lit . value: (sym_lit))] @name) @definition.struct (#eq? @_def "defstruct"))
((list_lit . value: (sym_lit) @_def . value: (sym_lit) @name) @definition.variable (#match? @_def "^(defvar|defparameter)$"))
((list_lit . value: (sym_lit) @_def . value: (sym_lit) @name) @definition.constant (#eq? @_def "defconstant"))
((list_lit . value: (sym_lit) @_def . value: (_) @name) @definition.module (#eq? @_def "defpackage"))
(comment) @lead
(block_comment) @lead

;;; uses
(list_lit . value: (sym_lit) @call)
((list_lit . value: (sym_lit) @_def . value: (_) @import.module) @import (#match? @_def "^(require|use-package|in-package)$"))
