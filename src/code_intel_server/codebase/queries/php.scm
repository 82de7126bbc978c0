(function_definition name: (name) @name) @definition.function
((method_declaration name: (name) @name) @definition.constructor (#eq? @name "__construct"))
(method_declaration name: (name) @name) @definition.method
(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.interface
(trait_declaration name: (name) @name) @definition.trait
(enum_declaration name: (name) @name) @definition.enum
(enum_case name: (name) @name) @definition.member
(namespace_definition name: (_) @name) @definition.namespace
(const_declaration (const_element (name) @name) @definition.constant)
((function_call_expression function: [(name) (qualified_name (name))] @_define arguments: (arguments . (argument [(string (string_content) @name) (encapsed_string (string_content) @name)]))) @definition.constant (#match? @_define "^[\\\\]?define$"))
(property_promotion_parameter name: (variable_name (name) @name)) @definition.field
(property_declaration (property_element (variable_name (name) @name))) @definition.field
(program (expression_statement (assignment_expression left: (variable_name (name) @name)) @definition.variable))
(comment) @lead
(attribute_list) @lead

;;; uses
(function_call_expression function: (name) @call)
(function_call_expression function: (qualified_name (name) @call))
(member_call_expression name: (name) @call)
(nullsafe_member_call_expression name: (name) @call)
(scoped_call_expression name: (name) @call)
(object_creation_expression [(name) @call (qualified_name (name) @call)])
(member_access_expression name: (name) @attribute)
(nullsafe_member_access_expression name: (name) @attribute)
(class_constant_access_expression (_) (name) @attribute .)
(base_clause [(name) @type (qualified_name (name) @type)])
(class_interface_clause [(name) @type (qualified_name (name) @type)])
(use_declaration [(name) @type (qualified_name (name) @type)])
(attribute [(name) @type (qualified_name (name) @type)])
(binary_expression operator: "instanceof" right: [(name) @type (qualified_name (name) @type)])
(namespace_use_clause [(name) (qualified_name)] @import.module) @import
(include_expression (_) @import.module) @import
(include_once_expression (_) @import.module) @import
(require_expression (_) @import.module) @import
(require_once_expression (_) @import.module) @import
