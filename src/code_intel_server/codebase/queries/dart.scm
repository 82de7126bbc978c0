(class_definition name: (identifier) @name) @definition.class
(mixin_declaration (identifier) @name (class_body) @body) @definition.trait
(extension_declaration name: (identifier) @name) @definition.impl
(enum_declaration name: (identifier) @name) @definition.enum
(enum_constant name: (identifier) @name) @definition.member
(type_alias . (type_identifier) @name) @definition.type
((method_signature (function_signature name: (identifier) @name)) @definition.method . (function_body) @body)
((method_signature (getter_signature name: (identifier) @name)) @definition.property . (function_body) @body)
((method_signature (setter_signature name: (identifier) @name)) @definition.property . (function_body) @body)
((method_signature (operator_signature (_) @name)) @definition.method . (function_body) @body)
((method_signature (constructor_signature name: (identifier) @name .)) @definition.constructor . (function_body) @body)
((method_signature (constructor_signature name: (identifier) @name)) @definition.constructor . (function_body) @body)
((method_signature (factory_constructor_signature (identifier) @name . (formal_parameter_list))) @definition.constructor . (function_body) @body)
(declaration (constant_constructor_signature (identifier) @name . (formal_parameter_list))) @definition.constructor
(declaration (constructor_signature name: (identifier) @name . (formal_parameter_list))) @definition.constructor
(declaration (function_signature name: (identifier) @name)) @definition.method
(declaration (getter_signature name: (identifier) @name)) @definition.property
(declaration (initialized_identifier_list (initialized_identifier (identifier) @name))) @definition.field
(declaration (static_final_declaration_list (static_final_declaration (identifier) @name))) @definition.constant
(local_function_declaration (lambda_expression parameters: (function_signature name: (identifier) @name) body: (_) @body)) @definition.function
((function_signature name: (identifier) @name) @definition.function . (function_body) @body)
(program (getter_signature name: (identifier) @name) @definition.function . (function_body) @body)
(program (static_final_declaration_list (static_final_declaration (identifier) @name) @definition.constant))
(program (initialized_identifier_list (initialized_identifier (identifier) @name) @definition.variable))
(library_name (_) @name) @definition.module
(comment) @lead
(documentation_comment) @lead
(annotation) @lead

;;; uses
((identifier) @call . (selector (argument_part)))
((selector (unconditional_assignable_selector (identifier) @call)) . (selector (argument_part)))
(library_import (import_specification (configurable_uri (_) @import.module))) @import
(library_export (configurable_uri (_) @import.module)) @import
