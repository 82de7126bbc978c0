(binary_operator lhs: (identifier) @name rhs: (function_definition body: (_) @body)) @definition.function
(binary_operator lhs: (string) @name rhs: (function_definition body: (_) @body)) @definition.function
(program (binary_operator lhs: (identifier) @name operator: ["<-" "=" "<<-"]) @definition.variable)
((call function: (identifier) @_set arguments: (arguments . (argument value: (string) @name))) @definition.class (#match? @_set "^(setClass|setRefClass|R6Class)$"))
((call function: (identifier) @_set arguments: (arguments . (argument value: (string) @name))) @definition.method (#match? @_set "^(setGeneric|setMethod)$"))
(comment) @lead

;;; uses
(call function: (identifier) @call)
(call function: (namespace_operator rhs: (identifier) @call))
(call function: (extract_operator rhs: (identifier) @call))
((call function: (identifier) @_library arguments: (arguments . (argument value: (_) @import.module))) @import (#match? @_library "^(library|require|source|requireNamespace)$"))
