[(struct_item name: (_) @name) (enum_item name: (_) @name) (union_item name: (_) @name) (trait_item name: (_) @name)] @decl.class
(enum_variant name: (identifier) @name) @decl.variant
(impl_item) @scope.class
(mod_item name: (identifier) @name body: (_) @scope.namespace) @decl.namespace
(mod_item name: (identifier) @name !body) @decl.import
(function_item name: (identifier) @name return_type: (_)? @type) @decl.function
(function_signature_item name: (identifier) @name return_type: (_)? @type) @decl.function
(closure_expression) @scope.function
[(block) (match_arm) (if_expression) (while_expression) (for_expression)] @scope.block
(field_declaration name: (field_identifier) @name type: (_) @type) @decl.field
(type_item name: (_) @name type: (_) @type) @decl.alias
(associated_type name: (_) @name) @decl.typeparam
[(const_item name: (identifier) @name type: (_) @type) (static_item name: (identifier) @name type: (_) @type)] @decl.variable
(macro_definition name: (identifier) @name) @decl.macro
(type_parameter name: (_) @name bounds: (trait_bounds (_) @type)?) @decl.typeparam
(const_parameter name: (identifier) @name type: (_) @type) @decl.variable
(parameter pattern: (identifier) @name type: (_) @type) @decl.parameter
(parameter pattern: (mut_pattern (identifier) @name) type: (_) @type) @decl.parameter
(closure_parameters (identifier) @name) @decl.part
(let_declaration pattern: (identifier) @name type: (_)? @type value: (_)? @value) @decl.variable
(let_declaration pattern: (mut_pattern (identifier) @name) type: (_)? @type value: (_)? @value) @decl.variable
(for_expression pattern: (identifier) @name value: (_) @element) @decl.variable
(let_condition pattern: (identifier) @name value: (_) @value) @decl.variable
[(tuple_pattern (identifier) @name) (slice_pattern (identifier) @name) (ref_pattern (identifier) @name) (mut_pattern (identifier) @name)
 (reference_pattern (identifier) @name) (tuple_struct_pattern type: (_) (identifier) @name) (match_pattern (identifier) @name)
 (field_pattern name: (shorthand_field_identifier) @name) (field_pattern pattern: (identifier) @name)
 (captured_pattern . (identifier) @name) (or_pattern (identifier) @name)] @decl.part
(use_declaration argument: (identifier) @name) @decl.import
(use_declaration argument: (scoped_identifier name: (identifier) @name)) @decl.import
(use_list [(identifier) @name (scoped_identifier name: (identifier) @name)]) @decl.import
(use_list (self) @name) @decl.itself
(use_as_clause alias: (_) @name) @decl.import
(use_wildcard) @name @decl.wide
(extern_crate_declaration alias: (identifier) @name) @decl.import
