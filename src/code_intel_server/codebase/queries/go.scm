(function_declaration name: (identifier) @name) @definition.function
(method_declaration receiver: (parameter_list (parameter_declaration type: [(type_identifier) @scope (pointer_type (type_identifier) @scope) (generic_type type: (type_identifier) @scope) (pointer_type (generic_type type: (type_identifier) @scope))])) name: (field_identifier) @name) @definition.method
(type_spec name: (type_identifier) @name type: (struct_type (field_declaration_list) @body)) @definition.struct
(type_spec name: (type_identifier) @name type: (interface_type)) @definition.interface
(type_spec name: (type_identifier) @name) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(method_elem name: (field_identifier) @name) @definition.method
(struct_type (field_declaration_list (field_declaration name: (field_identifier) @name) @definition.field))
(source_file (const_declaration (const_spec (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition.variable))
(source_file (var_declaration (var_spec_list (var_spec name: (identifier) @name) @definition.variable)))
(package_clause (package_identifier) @name) @definition.module
(comment) @lead

;;; uses
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression field: (field_identifier) @call))
(call_expression function: (parenthesized_expression [(identifier) @call (selector_expression field: (field_identifier) @call)]))
(call_expression function: (parenthesized_expression (unary_expression operand: [(identifier) @type (selector_expression field: (field_identifier) @type)])))
(call_expression function: (index_expression operand: [(identifier) @call (selector_expression field: (field_identifier) @call)]))
(type_conversion_expression type: (generic_type type: [(type_identifier) @call (qualified_type name: (type_identifier) @call)]))
(import_spec path: (_) @import.module) @import
