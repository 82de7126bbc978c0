((rule (targets (word) @name)) @definition.target (#not-match? @name "^\\.[A-Z_]+$"))
(variable_assignment name: (word) @name) @definition.variable
(define_directive name: (word) @name) @definition.macro
(comment) @lead

;;; uses
(include_directive filenames: (list (_) @import.module)) @import
(function_call function: _ @call)
