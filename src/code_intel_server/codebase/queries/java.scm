(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(record_declaration parameters: (formal_parameters (formal_parameter name: (identifier) @name) @definition.field))
(record_declaration parameters: (formal_parameters (spread_parameter (variable_declarator name: (identifier) @name)) @definition.field))
(interface_declaration name: (identifier) @name) @definition.interface
(annotation_type_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(enum_constant name: (identifier) @name) @definition.member
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.constructor
(compact_constructor_declaration name: (identifier) @name) @definition.constructor
(annotation_type_element_declaration name: (identifier) @name) @definition.method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.field
(constant_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.constant
(module_declaration name: (_) @name) @definition.module
(package_declaration [(identifier) (scoped_identifier)] @name) @definition.module
(line_comment) @lead
(block_comment) @lead

;;; uses
(method_invocation name: (identifier) @call)
(object_creation_expression type: [(type_identifier) @call (generic_type (type_identifier) @call)])
(object_creation_expression type: [(scoped_type_identifier (type_identifier) @call .) (generic_type (scoped_type_identifier (type_identifier) @call .))])
(marker_annotation name: [(identifier) @type (scoped_identifier name: (identifier) @type)])
(annotation name: [(identifier) @type (scoped_identifier name: (identifier) @type)])
(method_reference (identifier) @call .)
(import_declaration [(identifier) (scoped_identifier)] @import.module) @import
