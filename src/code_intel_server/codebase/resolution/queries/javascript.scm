(class_declaration name: (_) @name) @decl.class
[(function_declaration name: (_) @name) (generator_function_declaration name: (_) @name)] @decl.function
(class_body (method_definition name: [(property_identifier) (private_property_identifier)] @name) @decl.function)
(object (method_definition name: (property_identifier) @name) @decl.function)
(object (pair key: (property_identifier) @name value: (_) @value) @decl.field)
(object (shorthand_property_identifier) @name @value) @decl.shorthand
[(class) (object)] @scope.class
[(arrow_function) (function_expression) (generator_function)] @scope.function
[(statement_block) (for_statement) (for_in_statement) (catch_clause) (switch_body)] @scope.block

(variable_declarator name: (identifier) @name value: (_)? @value) @decl.variable
(_ (object_pattern (shorthand_property_identifier_pattern) @name)) @decl.part
(object_pattern (object_assignment_pattern left: (shorthand_property_identifier_pattern) @name)) @decl.part
(pair_pattern value: [(identifier) @name (assignment_pattern left: (identifier) @name)]) @decl.part
(array_pattern [(identifier) @name (assignment_pattern left: (identifier) @name) (rest_pattern (identifier) @name)]) @decl.part
(object_pattern (rest_pattern (identifier) @name)) @decl.part
(for_in_statement left: (identifier) @name right: (_) @element) @decl.variable
(catch_clause parameter: (identifier) @name) @decl.parameter
(arrow_function parameter: (identifier) @name) @decl.parameter
(assignment_expression left: (member_expression object: (this) property: [(property_identifier) (private_property_identifier)] @name) right: (_) @value) @decl.assigned
(assignment_expression left: (member_expression object: (identifier) @object property: (property_identifier) @name) right: (_) @value (#eq? @object "exports")) @decl.exports
(assignment_expression left: (member_expression object: (member_expression) @object property: (property_identifier) @name) right: (_) @value (#eq? @object "module.exports")) @decl.exports
(assignment_expression left: (member_expression object: (identifier) @object property: (property_identifier) @name) right: (_) @value (#eq? @object "module")) @decl.whole
(assignment_expression left: (member_expression object: (member_expression object: (identifier) property: (property_identifier) @prototype) property: (property_identifier) @name) right: (_) @value (#eq? @prototype "prototype")) @decl.prototype
(assignment_expression left: (member_expression object: (identifier) property: (property_identifier) @name) right: [(function_expression) (arrow_function) (generator_function) (class)] @value) @decl.added

(import_clause (identifier) @name) @decl.import
(import_clause (namespace_import (identifier) @name)) @decl.import
(import_specifier name: (identifier) @name !alias) @decl.import
(import_specifier alias: (identifier) @name) @decl.import
(export_specifier name: (_) @name !alias) @decl.export
(export_specifier alias: (_) @name) @decl.export
(export_statement (namespace_export (_) @name)) @decl.export
(export_statement "*" @name . source: (_)) @decl.wide
(export_statement "default" @name value: (_) @value) @decl.default
(export_statement "default" @name declaration: (_) @value) @decl.default
