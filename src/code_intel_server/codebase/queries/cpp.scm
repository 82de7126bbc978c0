;;; like c
(class_specifier name: (_) @name body: (_)) @definition.class
(struct_specifier name: (_) @name body: (_)) @definition.struct
(namespace_definition name: (_) @name) @definition.namespace
(function_definition declarator: (function_declarator declarator: [(field_identifier) (qualified_identifier) (destructor_name) (operator_name) (operator_cast)] @name)) @definition.function
(function_definition declarator: (_ (function_declarator declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name)] @name))) @definition.function
(function_definition declarator: (_ (_ (function_declarator declarator: [(identifier) (field_identifier) (qualified_identifier) (operator_name)] @name)))) @definition.function
(function_definition declarator: (function_declarator declarator: (template_function name: (identifier) @name))) @definition.function
(function_definition declarator: (operator_cast) @name) @definition.function
((translation_unit (expression_statement (assignment_expression left: (call_expression function: (qualified_identifier) @name) right: (identifier) @_default)) @definition.function) (#eq? @_default "default"))
((declaration_list (expression_statement (assignment_expression left: (call_expression function: (qualified_identifier) @name) right: (identifier) @_default)) @definition.function) (#eq? @_default "default"))
(field_declaration declarator: (function_declarator declarator: [(field_identifier) (operator_name) (destructor_name)] @name)) @definition.method
(field_declaration declarator: (_ (function_declarator declarator: [(field_identifier) (operator_name)] @name))) @definition.method
(field_declaration declarator: (reference_declarator (field_identifier) @name)) @definition.field
(declaration declarator: (function_declarator declarator: (destructor_name) @name)) @definition.method
(field_declaration_list (declaration declarator: (function_declarator declarator: (identifier) @name)) @definition.constructor)
(alias_declaration name: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.type
(namespace_definition body: (declaration_list (declaration declarator: (init_declarator declarator: (identifier) @name)) @definition.variable))

;;; uses
(call_expression function: (qualified_identifier name: (identifier) @call))
(call_expression function: (qualified_identifier name: (qualified_identifier name: (identifier) @call)))
(call_expression function: (template_function name: (identifier) @call))
(call_expression function: (qualified_identifier name: (template_function name: (identifier) @call)))
(new_expression type: (type_identifier) @call)
(using_declaration) @import
