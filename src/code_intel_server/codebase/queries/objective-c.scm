;;; like c
(protocol_declaration . (identifier) @name) @definition.interface
(class_interface . (identifier) @name) @definition.class
(class_implementation . (identifier) @name) @definition.impl
(method_declaration (method_type) . (identifier) @name) @definition.method @selector
(method_declaration . (identifier) @name) @definition.method @selector
(method_definition (method_type) . (identifier) @name (compound_statement) @body) @definition.method @selector
(method_definition . (identifier) @name (compound_statement) @body) @definition.method @selector
(property_declaration (struct_declaration (struct_declarator (identifier) @name))) @definition.property
(property_declaration (struct_declaration (struct_declarator (pointer_declarator declarator: (identifier) @name)))) @definition.property

;;; uses
(message_expression method: (identifier) @call)
(module_import path: (_) @import.module) @import
