(create_table (object_reference name: (identifier) @name)) @definition.table
(create_view (object_reference name: (identifier) @name)) @definition.view
(create_materialized_view (object_reference name: (identifier) @name)) @definition.view
(create_index column: (identifier) @name) @definition.index
(create_function (object_reference name: (identifier) @name) (function_body) @body) @definition.function
(create_type (object_reference name: (identifier) @name)) @definition.type
(create_trigger (object_reference name: (identifier) @name)) @definition.trigger
(create_schema (identifier) @name) @definition.namespace
(create_sequence (object_reference name: (identifier) @name)) @definition.variable
(column_definition name: (identifier) @name) @definition.field
(comment) @lead
(marginalia) @lead

;;; uses
(invocation (object_reference name: (identifier) @call))
