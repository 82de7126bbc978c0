(contract_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(library_declaration name: (identifier) @name) @definition.module
(struct_declaration name: (identifier) @name) @definition.struct
(struct_member name: (identifier) @name) @definition.field
(enum_declaration name: (identifier) @name) @definition.enum
(enum_value) @definition.member
(event_definition name: (identifier) @name) @definition.type
(error_declaration name: (identifier) @name) @definition.type
(constructor_definition "constructor" @name) @definition.constructor
(modifier_definition name: (identifier) @name) @definition.macro
(function_definition name: (identifier) @name) @definition.function
(fallback_receive_definition ["fallback" "receive"] @name) @definition.method
(state_variable_declaration name: (identifier) @name) @definition.field
(constant_variable_declaration name: (identifier) @name) @definition.constant
(comment) @lead

;;; uses
(call_expression function: (expression (identifier) @call))
(call_expression function: (expression (member_expression property: (identifier) @call)))
(emit_statement name: (expression (identifier) @call))
(modifier_invocation (identifier) @call)
(import_directive source: (string) @import.module) @import
