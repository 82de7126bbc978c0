(abstract_class_declaration name: (_) @name) @decl.class
(interface_declaration name: (_) @name) @decl.class
(enum_declaration name: (_) @name) @decl.class
(enum_body [(property_identifier) @name (enum_assignment name: (property_identifier) @name)]) @decl.member
(internal_module name: (identifier) @name body: (_) @scope.namespace) @decl.namespace
(module name: (identifier) @name body: (_) @scope.namespace) @decl.namespace
(type_alias_declaration name: (_) @name value: (_) @type) @decl.alias
(object_type) @scope.class
[(function_type) (constructor_type) (call_signature) (construct_signature)] @scope.function
(infer_type . (type_identifier) @name (_)? @type) @decl.typeparam
(mapped_type_clause name: (type_identifier) @name) @decl.typeparam
(_ type_parameters: (type_parameters (type_parameter name: (_) @name constraint: (constraint (_) @type)? ) @decl.typeparam))
(class_body (public_field_definition name: [(property_identifier) (private_property_identifier)] @name type: (_)? @type value: (_)? @value) @decl.field)
(property_signature name: (property_identifier) @name type: (_)? @type) @decl.field
[(method_signature name: (property_identifier) @name return_type: (_)? @type)
 (abstract_method_signature name: (property_identifier) @name return_type: (_)? @type)
 (function_signature name: (identifier) @name return_type: (_)? @type)] @decl.function
(variable_declarator name: (identifier) @name type: (_) @type value: (_)? @value) @decl.variable
(function_declaration name: (_) @name return_type: (_) @type) @decl.function
(generator_function_declaration name: (_) @name return_type: (_) @type) @decl.function
(method_definition name: [(property_identifier) (private_property_identifier)] @name return_type: (_) @type) @decl.function
[(required_parameter pattern: (identifier) @name type: (_)? @type value: (_)? @value)
 (optional_parameter pattern: (identifier) @name type: (_)? @type value: (_)? @value)] @decl.parameter
[(required_parameter pattern: (rest_pattern (identifier) @name) type: (_)? @type)] @decl.parameter
(import_require_clause (identifier) @name) @decl.import
(import_alias . (identifier) @name) @decl.importalias
