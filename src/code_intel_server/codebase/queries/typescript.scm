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
(abstract_class_declaration name: (_) @name) @definition.class
(interface_declaration name: (_) @name) @definition.interface
(type_alias_declaration name: (_) @name) @definition.type
(enum_declaration name: (_) @name) @definition.enum
(enum_assignment name: (_) @name) @definition.member
(enum_body name: (_) @name @definition.member)
(internal_module name: (_) @name) @definition.namespace
(module name: (_) @name) @definition.module
(function_signature name: (_) @name) @definition.function
((method_signature name: (_) @name) @definition.constructor (#eq? @name "constructor"))
(method_signature name: (_) @name) @definition.method
(abstract_method_signature name: (_) @name) @definition.method
(interface_body (property_signature name: (_) @name) @definition.property)
(type_alias_declaration value: (object_type (property_signature name: (_) @name) @definition.property))
(public_field_definition name: (_) @name value: [(arrow_function body: (_) @body) (function_expression name: (identifier)? @own body: (_) @body)]) @definition.method
(public_field_definition name: (_) @name) @definition.field
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier) @name)) @definition.variable)
(ambient_declaration (variable_declaration (variable_declarator name: (identifier) @name)) @definition.variable)
(ambient_declaration (statement_block (lexical_declaration (variable_declarator name: (identifier) @name)) @definition.variable))
(ambient_declaration (statement_block (variable_declaration (variable_declarator name: (identifier) @name)) @definition.variable))
(internal_module body: (statement_block (lexical_declaration (variable_declarator name: (identifier) @name)) @definition.variable))
(internal_module body: (statement_block (variable_declaration (variable_declarator name: (identifier) @name)) @definition.variable))
(internal_module body: (statement_block (export_statement (lexical_declaration (variable_declarator name: (identifier) @name)) @definition.variable)))
(internal_module body: (statement_block (export_statement (variable_declaration (variable_declarator name: (identifier) @name)) @definition.variable)))
(module body: (statement_block (lexical_declaration (variable_declarator name: (identifier) @name)) @definition.variable))
(module body: (statement_block (variable_declaration (variable_declarator name: (identifier) @name)) @definition.variable))
(module body: (statement_block (export_statement (lexical_declaration (variable_declarator name: (identifier) @name)) @definition.variable)))
(module body: (statement_block (export_statement (variable_declaration (variable_declarator name: (identifier) @name)) @definition.variable)))
(required_parameter ["readonly" (accessibility_modifier) (override_modifier)] pattern: (identifier) @name) @definition.field
(optional_parameter ["readonly" (accessibility_modifier) (override_modifier)] pattern: (identifier) @name) @definition.field
(program (lexical_declaration (variable_declarator name: (object_pattern [(shorthand_property_identifier_pattern) @name (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name) (pair_pattern value: [(identifier) @name (assignment_pattern left: (identifier) @name)]) (rest_pattern (identifier) @name)]) value: (_) @_value)) @definition.variable (#not-match? @_value "^(await import|require)\\b"))
(program (export_statement (lexical_declaration (variable_declarator name: (object_pattern [(shorthand_property_identifier_pattern) @name (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name) (pair_pattern value: [(identifier) @name (assignment_pattern left: (identifier) @name)]) (rest_pattern (identifier) @name)]) value: (_) @_value)) @definition.variable (#not-match? @_value "^(await import|require)\\b")))
(function_expression name: (identifier) @name) @definition.function
(generator_function name: (identifier) @name) @definition.function
(comment) @lead
(decorator) @lead

;;; uses
(call_expression function: (identifier) @call)
(call_expression function: (member_expression property: [(property_identifier) (private_property_identifier)] @call))
(call_expression function: (await_expression [(identifier) @call (member_expression property: (property_identifier) @call)]) type_arguments: (_))
(call_expression function: (non_null_expression [(identifier) @call (member_expression property: (property_identifier) @call)]))
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
(extends_clause value: [(identifier) @type (member_expression property: (property_identifier) @type)])
(import_alias (identifier) @import.name)
(import_alias (nested_identifier property: (property_identifier) @import.name))
(import_require_clause source: (string) @import.module) @import
(subscript_expression index: (string (string_fragment) @attribute))
(lookup_type (literal_type (string (string_fragment) @attribute)))
