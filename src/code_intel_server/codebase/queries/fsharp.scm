(named_module name: (_) @name) @definition.module
(module_defn (identifier) @name) @definition.module
(namespace name: (_) @name) @definition.namespace
(type_definition (record_type_defn (type_name type_name: (_) @name))) @definition.struct
(type_definition (union_type_defn (type_name type_name: (_) @name))) @definition.union
(type_definition (enum_type_defn (type_name type_name: (_) @name))) @definition.enum
(type_definition (interface_type_defn (type_name type_name: (_) @name))) @definition.interface
(type_definition (anon_type_defn (type_name type_name: (_) @name))) @definition.class
(type_definition (type_abbrev_defn (type_name type_name: (_) @name))) @definition.type
(record_field . (identifier) @name) @definition.field
(union_type_case . (identifier) @name) @definition.member
(enum_type_case . (identifier) @name) @definition.member
(function_or_value_defn (function_declaration_left . (access_modifier)? . (identifier) @name) body: (_) @body) @definition.function
(named_module (declaration_expression (function_or_value_defn (value_declaration_left (identifier_pattern (long_identifier_or_op (identifier) @name)))) @definition.variable))
(module_defn (declaration_expression (function_or_value_defn (value_declaration_left (identifier_pattern (long_identifier_or_op (identifier) @name)))) @definition.variable))
(member_defn (method_or_prop_defn name: (property_or_ident method: (identifier) @name))) @definition.method
(member_defn (member_signature . (identifier) @name (curried_spec (arguments_spec)))) @definition.method
(member_defn (member_signature . (identifier) @name)) @definition.property
(line_comment) @lead
(block_comment) @lead

;;; uses
(application_expression . (long_identifier_or_op (identifier) @call))
(application_expression . (long_identifier_or_op (long_identifier (identifier) @call .)))
(import_decl (_) @import.module) @import
