(class_declaration "interface" (type_identifier) @name [(class_body) (enum_class_body)]? @body) @definition.interface
(class_declaration "enum" (type_identifier) @name (enum_class_body)? @body) @definition.enum
(class_declaration (type_identifier) @name [(class_body) (enum_class_body)]? @body) @definition.class
(object_declaration (type_identifier) @name (class_body)? @body) @definition.object
(companion_object (type_identifier) @name (class_body)? @body) @definition.object
(enum_entry (simple_identifier) @name) @definition.member
(type_alias (type_identifier) @name) @definition.type
(function_declaration (simple_identifier) @name (function_body)? @body) @definition.function
(secondary_constructor "constructor" @name) @definition.constructor
(source_file (property_declaration (binding_pattern_kind "val") (variable_declaration (simple_identifier) @name)) @definition.constant (#match? @name "^[A-Z][A-Z0-9_]*$"))
(source_file (property_declaration (variable_declaration (simple_identifier) @name)) @definition.variable)
(class_body (property_declaration (variable_declaration (simple_identifier) @name)) @definition.property)
(package_header (identifier) @name) @definition.module
(line_comment) @lead
(multiline_comment) @lead

;;; uses
(call_expression . (simple_identifier) @call)
(call_expression . (navigation_expression (navigation_suffix (simple_identifier) @call .) .))
(constructor_invocation (user_type (type_identifier) @call))
(import_header (identifier) @import.module) @import
