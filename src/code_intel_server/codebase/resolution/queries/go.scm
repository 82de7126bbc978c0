(type_spec name: (type_identifier) @name) @decl.class
(type_alias name: (type_identifier) @name type: (_) @type) @decl.alias
(function_declaration name: (identifier) @name result: (_)? @type) @decl.function
(method_declaration name: (field_identifier) @name result: (_)? @type) @decl.method
(method_declaration) @scope.body
[(func_literal) (function_type)] @scope.function
[(block) (if_statement) (for_statement) (expression_case) (type_case) (communication_case) (default_case)
 (expression_switch_statement) (type_switch_statement) (select_statement)] @scope.block
(field_declaration type: (struct_type) @scope.class)
(var_spec type: (struct_type) @scope.class)
(composite_literal type: (struct_type) @scope.class)
(slice_type element: (struct_type) @scope.class)
(array_type element: (struct_type) @scope.class)
(map_type value: (struct_type) @scope.class)
(parameter_declaration type: (interface_type) @scope.class)
(parameter_declaration name: (identifier) @name type: (_) @type) @decl.parameter
(variadic_parameter_declaration name: (identifier) @name type: (_) @type) @decl.several
(type_parameter_declaration name: (identifier) @name type: (_) @type) @decl.typeparam
(method_declaration receiver: (parameter_list (parameter_declaration type: [
  (generic_type type_arguments: (type_arguments (type_elem (type_identifier) @name)))
  (pointer_type (generic_type type_arguments: (type_arguments (type_elem (type_identifier) @name))))]))) @decl.typeparam
(field_declaration name: (field_identifier) @name type: (_) @type) @decl.field
(field_declaration !name type: [(type_identifier) @name (qualified_type name: (_) @name) (generic_type type: (type_identifier) @name)] @type) @decl.field
(method_elem name: (field_identifier) @name result: (_)? @type) @decl.function
(var_spec name: (identifier) @name type: (_) @type) @decl.variable
(var_spec name: (identifier) @name !type value: (_) @value) @decl.part
(const_spec name: (identifier) @name type: (_)? @type) @decl.constant
(short_var_declaration left: (expression_list (identifier) @name) right: (_) @value) @decl.part
(receive_statement left: (expression_list (identifier) @name) right: (_) @value) @decl.part
(range_clause left: (expression_list (identifier) @name) right: (_) @value) @decl.part
(type_switch_statement alias: (expression_list (identifier) @name) value: (_) @value) @decl.part
(import_spec !name path: (_) @name) @decl.import
(import_spec name: (package_identifier) @name) @decl.import
