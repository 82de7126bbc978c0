(function_declaration name: (identifier) @name) @definition.function
(function_declaration name: (dot_index_expression table: (_) @scope field: (identifier) @name)) @definition.function
(function_declaration name: (method_index_expression table: (_) @scope method: (identifier) @name)) @definition.method
(assignment_statement (variable_list . name: (identifier) @name) (expression_list . value: (function_definition body: (_)? @body))) @definition.function
(assignment_statement (variable_list . name: (dot_index_expression table: (_) @scope field: (identifier) @name)) (expression_list . value: (function_definition body: (_)? @body))) @definition.function
(chunk (variable_declaration (assignment_statement (variable_list name: (identifier) @name))) @definition.variable)
(chunk (assignment_statement (variable_list name: (identifier) @name)) @definition.variable)
(comment) @lead

;;; uses
(function_call name: (identifier) @call)
(function_call name: (dot_index_expression field: (identifier) @call))
(function_call name: (method_index_expression method: (identifier) @call))
((function_call name: (identifier) @_require arguments: (arguments (string) @import.module)) @import (#match? @_require "^(require|dofile)$"))
