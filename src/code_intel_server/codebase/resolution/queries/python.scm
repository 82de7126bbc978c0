(class_definition name: (identifier) @name) @decl.class
(function_definition name: (identifier) @name return_type: (_)? @type) @decl.function
(lambda) @scope.function
[(list_comprehension) (dictionary_comprehension) (set_comprehension) (generator_expression)] @scope.block
(type_alias_statement left: (type (identifier) @name) right: (type) @type) @decl.alias
(_ type_parameters: (type_parameter (type (identifier) @name) @decl.typeparam))
(_ type_parameters: (type_parameter (type (constrained_type (type (identifier) @name) (type) @type)) @decl.typeparam))

(parameters (identifier) @name) @decl.parameter
(parameters (default_parameter name: (identifier) @name value: (_) @value) @decl.parameter)
(parameters (typed_parameter . (identifier) @name type: (_) @type) @decl.parameter)
(parameters (typed_parameter . [(list_splat_pattern (identifier) @name) (dictionary_splat_pattern (identifier) @name)]) @decl.several)
(parameters (typed_default_parameter name: (identifier) @name type: (_) @type) @decl.parameter)
(parameters [(list_splat_pattern (identifier) @name) (dictionary_splat_pattern (identifier) @name)]) @decl.several
(lambda_parameters (identifier) @name) @decl.parameter
(lambda_parameters (default_parameter name: (identifier) @name) @decl.parameter)

(assignment left: (identifier) @name type: (_)? @type right: (_)? @value) @decl.variable
(assignment left: [(pattern_list (identifier) @name) (tuple_pattern (identifier) @name) (list_pattern (identifier) @name)] right: (_) @item) @decl.variable
(assignment left: (attribute object: (identifier) attribute: (identifier) @name) type: (_)? @type right: (_)? @value) @decl.field
(augmented_assignment left: (identifier) @name) @decl.again
(named_expression name: (identifier) @name value: (_) @value) @decl.variable
(for_statement left: (identifier) @name right: (_) @element) @decl.variable
(for_statement left: [(pattern_list (identifier) @name) (tuple_pattern (identifier) @name)] right: (_) @element) @decl.part
(for_in_clause left: (identifier) @name right: (_) @element) @decl.variable
(for_in_clause left: [(pattern_list (identifier) @name) (tuple_pattern (identifier) @name)] right: (_) @element) @decl.part
(with_item value: (as_pattern (_) @enter alias: (as_pattern_target (identifier) @name))) @decl.variable
(except_clause (as_pattern (_) @type alias: (as_pattern_target (identifier) @name))) @decl.variable
(case_clause (case_pattern (as_pattern alias: (_) @name))) @decl.variable
(case_pattern (dotted_name . (identifier) @name .)) @decl.capture

(import_statement name: (dotted_name . (identifier) @name)) @decl.import
(import_statement name: (aliased_import alias: (identifier) @name)) @decl.import
(import_from_statement name: (dotted_name (identifier) @name)) @decl.import
(import_from_statement name: (aliased_import alias: (identifier) @name)) @decl.import
(import_from_statement (wildcard_import) @name) @decl.wide
[(global_statement (identifier) @name) (nonlocal_statement (identifier) @name)] @decl.global
