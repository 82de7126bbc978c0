(object_type_definition (name) @name (fields_definition)? @body) @definition.class
(interface_type_definition (name) @name (fields_definition)? @body) @definition.interface
(enum_type_definition (name) @name (enum_values_definition)? @body) @definition.enum
(enum_value_definition (enum_value (name) @name)) @definition.member
(input_object_type_definition (name) @name (input_fields_definition)? @body) @definition.struct
(input_fields_definition (input_value_definition (name) @name) @definition.field)
(union_type_definition (name) @name) @definition.union
(scalar_type_definition (name) @name) @definition.type
(directive_definition (name) @name) @definition.macro
(field_definition (name) @name) @definition.field
(object_type_extension (name) @name) @definition.impl
(operation_definition (name) @name (selection_set) @body) @definition.function
(fragment_definition (fragment_name) @name (selection_set) @body) @definition.function
(comment) @lead
(description) @lead

;;; uses
(fragment_spread (fragment_name) @call)
(named_type (name) @type)
