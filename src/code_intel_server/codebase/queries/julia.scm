(module_definition name: (identifier) @name (block)? @body) @definition.module
(struct_definition (type_head (identifier) @name) (block)? @body) @definition.struct
(struct_definition (type_head (binary_expression . (identifier) @name)) (block)? @body) @definition.struct
(struct_definition (type_head (parametrized_type_expression . (identifier) @name)) (block)? @body) @definition.struct
(struct_definition (type_head (binary_expression . (parametrized_type_expression . (identifier) @name))) (block)? @body) @definition.struct
(abstract_definition (type_head [(identifier) @name (binary_expression . (identifier) @name) (parametrized_type_expression . (identifier) @name) (binary_expression . (parametrized_type_expression . (identifier) @name))])) @definition.type
(struct_definition (block (typed_expression . (identifier) @name) @definition.field))
(function_definition (signature (call_expression . [(identifier) @name (field_expression value: (_) @scope (identifier) @name .) (parametrized_type_expression . (identifier) @name)])) (block)? @body) @definition.function
(function_definition (signature (where_expression . (call_expression . [(identifier) @name (field_expression value: (_) @scope (identifier) @name .) (parametrized_type_expression . (identifier) @name)]))) (block)? @body) @definition.function
(function_definition (signature (typed_expression . (call_expression . [(identifier) @name (field_expression value: (_) @scope (identifier) @name .) (parametrized_type_expression . (identifier) @name)]))) (block)? @body) @definition.function
(function_definition (signature (where_expression . (typed_expression . (call_expression . [(identifier) @name (field_expression value: (_) @scope (identifier) @name .) (parametrized_type_expression . (identifier) @name)])))) (block)? @body) @definition.function
(function_definition (signature (identifier) @name)) @definition.function
(macro_definition (signature (call_expression . (identifier) @name)) (block)? @body) @definition.macro
(assignment . (call_expression . [(identifier) @name (field_expression value: (_) @scope (identifier) @name .) (parametrized_type_expression . (identifier) @name)]) (operator) (_) @body) @definition.function
(assignment . (where_expression . [(call_expression . [(identifier) @name (field_expression value: (_) @scope (identifier) @name .) (parametrized_type_expression . (identifier) @name)]) (typed_expression . (call_expression . [(identifier) @name (field_expression value: (_) @scope (identifier) @name .) (parametrized_type_expression . (identifier) @name)]))]) (operator) (_) @body) @definition.function
(assignment . (typed_expression . (call_expression . [(identifier) @name (field_expression value: (_) @scope (identifier) @name .) (parametrized_type_expression . (identifier) @name)])) (operator) (_) @body) @definition.function
(const_statement (assignment . (identifier) @name)) @definition.constant
(line_comment) @lead
(block_comment) @lead
(string_literal) @lead

;;; uses
(call_expression . (identifier) @call)
(call_expression . (field_expression (identifier) @call .))
(macrocall_expression . (macro_identifier (identifier) @call))
(using_statement (_) @import.module) @import
(import_statement (_) @import.module) @import
