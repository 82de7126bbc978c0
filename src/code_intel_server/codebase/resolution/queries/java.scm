[(class_declaration name: (identifier) @name) (interface_declaration name: (identifier) @name)
 (enum_declaration name: (identifier) @name) (record_declaration name: (identifier) @name)
 (annotation_type_declaration name: (identifier) @name)] @decl.class
[(method_declaration type: (_) @type name: (identifier) @name)
 (annotation_type_element_declaration type: (_) @type name: (identifier) @name)] @decl.function
[(constructor_declaration) (compact_constructor_declaration) (lambda_expression)] @scope.function
[(block) (for_statement) (enhanced_for_statement) (try_with_resources_statement) (catch_clause) (switch_block_statement_group)
 (switch_rule) (constructor_body)] @scope.block
(object_creation_expression (class_body) @scope.class)
(enum_constant body: (class_body) @scope.class)
[(field_declaration type: (_) @type declarator: (variable_declarator name: (identifier) @name value: (_)? @value))
 (constant_declaration type: (_) @type declarator: (variable_declarator name: (identifier) @name value: (_)? @value))] @decl.field
(enum_constant name: (identifier) @name) @decl.constant
(local_variable_declaration type: (_) @type declarator: (variable_declarator name: (identifier) @name value: (_)? @value)) @decl.variable
(formal_parameter type: (_) @type name: (identifier) @name) @decl.parameter
(spread_parameter [(type_identifier) (generic_type) (integral_type) (array_type) (scoped_type_identifier)] @type (variable_declarator name: (identifier) @name)) @decl.several
(enhanced_for_statement type: (_) @type name: (identifier) @name value: (_) @element) @decl.variable
(resource type: (_) @type name: (identifier) @name value: (_) @value) @decl.variable
(catch_formal_parameter (catch_type (_) @type) name: (identifier) @name) @decl.variable
(instanceof_expression right: (_) @type name: (identifier) @name) @decl.variable
(type_pattern (_) @type (identifier) @name) @decl.variable
(record_pattern_component (_) @type (identifier) @name) @decl.variable
(lambda_expression parameters: (identifier) @name) @decl.parameter
(inferred_parameters (identifier) @name) @decl.parameter
(type_parameter (type_identifier) @name (type_bound (_) @type)?) @decl.typeparam
(import_declaration (scoped_identifier name: (identifier) @name) .) @decl.import
(import_declaration (_) @name (asterisk)) @decl.wide
