(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(class_declaration name: (_) @name) @definition.class
(class name: (_) @name) @definition.class
((method_definition name: (_) @name) @definition.constructor (#eq? @name "constructor"))
(method_definition name: (_) @name) @definition.method
(variable_declarator name: (identifier) @name value: [(arrow_function body: (_) @body) (function_expression name: (identifier)? @own body: (_) @body) (generator_function name: (identifier)? @own body: (_) @body)]) @definition.function
(variable_declarator name: (identifier) @name value: (class body: (_) @body)) @definition.class
(program [(lexical_declaration (variable_declarator name: (identifier) @name) @definition.constant) (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition.constant))] (#match? @name "^[A-Z][A-Z0-9_]*$"))
(program (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @definition.variable)))
(program (export_statement (variable_declaration (variable_declarator name: (identifier) @name) @definition.variable)))
(pair key: [(property_identifier) (string) (number) (computed_property_name)] @name value: [(arrow_function body: (_) @body) (function_expression name: (identifier)? @own body: (_) @body) (generator_function name: (identifier)? @own body: (_) @body)]) @definition.method
(assignment_expression left: (identifier) @name right: [(arrow_function body: (_) @body) (function_expression name: (identifier)? @own body: (_) @body) (generator_function name: (identifier)? @own body: (_) @body)]) @definition.function
(assignment_expression left: (member_expression object: (member_expression object: (identifier) @scope property: (property_identifier) @_prototype) property: (property_identifier) @name) right: [(arrow_function body: (_) @body) (function_expression name: (identifier)? @own body: (_) @body)] (#eq? @_prototype "prototype")) @definition.method
((assignment_expression left: (member_expression object: (identifier) @scope property: [(property_identifier) (private_property_identifier)] @name) right: [(arrow_function body: (_) @body) (function_expression name: (identifier)? @own body: (_) @body) (generator_function name: (identifier)? @own body: (_) @body)]) @definition.function (#not-match? @scope "^(exports|module|window|globalThis|self)$"))
(assignment_expression left: (member_expression property: [(property_identifier) (private_property_identifier)] @name) right: [(arrow_function body: (_) @body) (function_expression name: (identifier)? @own body: (_) @body) (generator_function name: (identifier)? @own body: (_) @body)]) @definition.function
(field_definition property: (_) @name value: [(arrow_function body: (_) @body) (function_expression name: (identifier)? @own body: (_) @body)]) @definition.method
(field_definition property: (_) @name) @definition.field
(program (lexical_declaration (variable_declarator name: (object_pattern [(shorthand_property_identifier_pattern) @name (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name) (pair_pattern value: [(identifier) @name (assignment_pattern left: (identifier) @name)]) (rest_pattern (identifier) @name)]) value: (_) @_value)) @definition.variable (#not-match? @_value "^(await import|require)\\b"))
(program (export_statement (lexical_declaration (variable_declarator name: (object_pattern [(shorthand_property_identifier_pattern) @name (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name) (pair_pattern value: [(identifier) @name (assignment_pattern left: (identifier) @name)]) (rest_pattern (identifier) @name)]) value: (_) @_value)) @definition.variable (#not-match? @_value "^(await import|require)\\b")))
(function_expression name: (identifier) @name) @definition.function
(generator_function name: (identifier) @name) @definition.function
(comment) @lead
(decorator) @lead

;;; uses
(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: [(property_identifier) (private_property_identifier)] @call))
(new_expression constructor: (identifier) @call)
(new_expression constructor: (member_expression property: (property_identifier) @call))
(import_statement source: (string) @import.module) @import
(export_statement source: (string) @import.module) @import
((call_expression function: (identifier) @_require arguments: (arguments . (string) @import.module)) @import (#eq? @_require "require"))
((call_expression function: (import) arguments: (arguments . (string) @import.module)) @import)
(variable_declarator name: [(identifier) @import.name (object_pattern [(shorthand_property_identifier_pattern) @import.name (object_assignment_pattern left: (shorthand_property_identifier_pattern) @import.name) (pair_pattern value: [(identifier) @import.name (assignment_pattern left: (identifier) @import.name)]) (rest_pattern (identifier) @import.name)])] value: [(call_expression function: (identifier) @_require arguments: (arguments . (string) .)) (member_expression object: (call_expression function: (identifier) @_require arguments: (arguments . (string) .)))] (#eq? @_require "require"))
(variable_declarator name: [(identifier) @import.name (object_pattern [(shorthand_property_identifier_pattern) @import.name (object_assignment_pattern left: (shorthand_property_identifier_pattern) @import.name) (pair_pattern value: [(identifier) @import.name (assignment_pattern left: (identifier) @import.name)]) (rest_pattern (identifier) @import.name)])] value: (await_expression (call_expression function: (import))))
(function_expression name: (identifier) @definition)
(generator_function name: (identifier) @definition)
(jsx_opening_element name: (identifier) @call (#match? @call "^[A-Z]"))
(jsx_self_closing_element name: (identifier) @call (#match? @call "^[A-Z]"))
(jsx_opening_element name: (member_expression property: (property_identifier) @call))
(jsx_self_closing_element name: (member_expression property: (property_identifier) @call))
(class_heritage [(identifier) @type (member_expression property: (property_identifier) @type)])
(subscript_expression index: (string (string_fragment) @attribute))
