(function_definition declarator: (function_declarator declarator: (identifier) @name)) @definition.function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name))) @definition.function
(function_definition declarator: (pointer_declarator declarator: (pointer_declarator declarator: (function_declarator declarator: (identifier) @name)))) @definition.function
(function_definition declarator: (parenthesized_declarator (function_declarator declarator: (identifier) @name))) @definition.function
(function_definition declarator: (function_declarator declarator: (parenthesized_declarator (identifier) @name))) @definition.function
(struct_specifier name: (type_identifier) @name body: (_)) @definition.struct
(union_specifier name: (type_identifier) @name body: (_)) @definition.union
(enum_specifier name: (type_identifier) @name body: (_)) @definition.enum
(type_definition type: [(struct_specifier !name body: (_) @body) (union_specifier !name body: (_) @body) (enum_specifier !name body: (_) @body)] declarator: (type_identifier) @name) @definition.struct
(type_definition type: [(struct_specifier name: (_) body: (_)) (union_specifier name: (_) body: (_)) (enum_specifier name: (_) body: (_))] declarator: (_) @declarator @definition.type)
(type_definition declarator: (_) @declarator) @definition.type
(enumerator name: (identifier) @name) @definition.member
(field_declaration declarator: (_) @declarator) @definition.field
(preproc_def name: (identifier) @name) @definition.macro
(preproc_function_def name: (identifier) @name) @definition.macro
(declaration type: [(struct_specifier name: (_) body: (_)) (union_specifier name: (_) body: (_)) (enum_specifier name: (_) body: (_))] declarator: (_) @declarator @definition.variable)
(translation_unit (declaration declarator: (_) @declarator) @definition.variable)
(preproc_if (declaration declarator: (_) @declarator) @definition.variable)
(preproc_ifdef (declaration declarator: (_) @declarator) @definition.variable)
(preproc_else (declaration declarator: (_) @declarator) @definition.variable)
(preproc_elif (declaration declarator: (_) @declarator) @definition.variable)
(declaration_list (declaration declarator: (_) @declarator) @definition.variable)
(comment) @lead

;;; uses
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(preproc_include path: (_) @import.module) @import
