(binding attrpath: (_) @name expression: (function_expression body: (_) @body)) @definition.function
(binding attrpath: (_) @name) @definition.key
(comment) @lead

;;; uses
(apply_expression function: (variable_expression name: (identifier) @call))
(apply_expression function: (select_expression attrpath: (attrpath attr: (identifier) @call .)))
((apply_expression function: (variable_expression name: (identifier) @_import) argument: (_) @import.module) @import (#eq? @_import "import"))
