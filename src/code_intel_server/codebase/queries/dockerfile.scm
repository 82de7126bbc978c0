(from_instruction as: (image_alias) @name) @definition.stage @flat
(from_instruction (image_spec) @name .) @definition.stage @flat
(arg_instruction name: (unquoted_string) @name) @definition.variable
(env_pair name: (unquoted_string) @name) @definition.variable
(comment) @lead

;;; uses
(from_instruction (image_spec) @import.module) @import
