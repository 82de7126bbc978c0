(package_statement name: (package) @name) @definition.module
(subroutine_declaration_statement name: (bareword) @name) @definition.function
(method_declaration_statement name: (bareword) @name) @definition.method
(class_statement name: (package) @name) @definition.class
(source_file (expression_statement (assignment_expression left: (variable_declaration "our" variable: (_ (varname) @name)))) @definition.variable)
(comment) @lead
(pod) @lead

;;; uses
(function_call_expression function: (function) @call)
(ambiguous_function_call_expression function: (function) @call)
(method_call_expression method: (method) @call)
(use_statement module: (package) @import.module) @import
(require_expression (bareword) @import.module) @import
