(function_statement (function_name) @name (script_block)? @body) @definition.function
(class_statement . (simple_name) @name) @definition.class
(class_method_definition (simple_name) @name (script_block)? @body) @definition.method
(class_property_definition (variable) @name) @definition.field
(enum_statement . (simple_name) @name) @definition.enum
(enum_member (simple_name) @name) @definition.member
(comment) @lead

;;; uses
(command command_name: (command_name) @call)
(invokation_expression (member_name) @call)
((command command_name: (command_name) @_import command_elements: (command_elements (generic_token) @import.module)) @import (#match? @_import "^(Import-Module|using)$"))
