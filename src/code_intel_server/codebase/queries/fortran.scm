(module (module_statement (name) @name)) @definition.module
(program (program_statement (name) @name)) @definition.module
(subroutine (subroutine_statement name: (name) @name)) @definition.function
(function (function_statement name: (name) @name)) @definition.function
(derived_type_definition (derived_type_statement (type_name) @name)) @definition.struct
(interface (interface_statement (name) @name)) @definition.function
(derived_type_procedures (procedure_statement (procedure_kind) @_kind declarator: (method_name) @name) @definition.method (#match? @_kind "^(?i:procedure)$"))
(derived_type_procedures (procedure_statement declarator: (binding (binding_name (identifier) @name))) @definition.method)
((module (variable_declaration attribute: (type_qualifier) @_parameter declarator: (init_declarator left: (identifier) @name)) @definition.constant) (#match? @_parameter "^(?i:parameter)$"))
(derived_type_definition (variable_declaration declarator: (identifier) @name) @definition.field)
(comment) @lead

;;; uses
(subroutine_call subroutine: (identifier) @call)
(call_expression . (identifier) @call)
(use_statement (module_name) @import.module) @import
(include_statement path: (_) @import.module) @import
