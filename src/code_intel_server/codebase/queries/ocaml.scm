(exception_definition (constructor_declaration (constructor_name) @name)) @definition.class
(module_definition (module_binding (module_name) @name body: (_)? @body)) @definition.module
(module_type_definition (module_type_name) @name) @definition.interface
(type_definition (type_binding name: (_) @name)) @definition.type
(constructor_declaration (constructor_name) @name) @definition.member
(field_declaration (field_name) @name) @definition.field
(class_definition (class_binding (class_name) @name body: (_)? @body)) @definition.class
(class_type_definition (class_type_binding (class_type_name) @name)) @definition.interface
(method_definition (method_name) @name) @definition.method
(value_definition (let_binding pattern: (value_name) @name (parameter) body: (_) @body)) @definition.function
(value_definition (let_binding pattern: (value_name) @name body: (fun_expression) @body)) @definition.function
(value_definition (let_binding pattern: (value_name) @name body: (function_expression) @body)) @definition.function
(compilation_unit (value_definition (let_binding pattern: (value_name) @name)) @definition.variable)
(structure (value_definition (let_binding pattern: (value_name) @name)) @definition.variable)
(value_specification (value_name) @name) @definition.function
(external (value_name) @name) @definition.function
(comment) @lead

;;; uses
(application_expression function: (value_path (value_name) @call))
(open_module module: (_) @import.module) @import
(include_module module: (_) @import.module) @import
