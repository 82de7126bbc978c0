(class_declaration "struct" name: (_) @name) @definition.struct
(class_declaration "enum" name: (_) @name) @definition.enum
(class_declaration "extension" name: (_) @name) @definition.impl
(class_declaration name: (_) @name) @definition.class
(protocol_declaration name: (_) @name) @definition.interface
(enum_entry name: (simple_identifier) @name) @definition.member
(function_declaration name: (simple_identifier) @name) @definition.function
(function_declaration "func" . _ @name . "(") @definition.function
(protocol_function_declaration name: (simple_identifier) @name) @definition.method
(init_declaration "init" @name) @definition.constructor
(deinit_declaration "deinit" @name) @definition.method
(subscript_declaration "subscript" @name) @definition.method
(typealias_declaration name: (type_identifier) @name) @definition.type
(associatedtype_declaration name: (type_identifier) @name) @definition.type
(class_body (property_declaration name: (pattern (simple_identifier) @name) computed_value: (_)? @body) @definition.property)
(protocol_property_declaration name: (pattern (simple_identifier) @name)) @definition.property
(source_file (property_declaration name: (pattern (simple_identifier) @name)) @definition.variable)
(comment) @lead
(multiline_comment) @lead

;;; uses
(call_expression . (simple_identifier) @call)
(call_expression . (navigation_expression suffix: (navigation_suffix suffix: (simple_identifier) @call)))
(import_declaration (identifier) @import.module) @import
