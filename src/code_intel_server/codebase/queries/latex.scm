(part text: (curly_group (_) @name)) @definition.heading
(chapter text: (curly_group (_) @name)) @definition.heading
(section text: (curly_group (_) @name)) @definition.heading
(subsection text: (curly_group (_) @name)) @definition.heading
(subsubsection text: (curly_group (_) @name)) @definition.heading
(paragraph text: (curly_group (_) @name)) @definition.heading
(label_definition name: (curly_group_label (label) @name)) @definition.label
(new_command_definition declaration: (curly_group_command_name (command_name) @name)) @definition.macro
(new_command_definition declaration: (command_name) @name) @definition.macro
(environment_definition name: (curly_group_text (text) @name)) @definition.macro
(line_comment) @lead

;;; uses
(package_include paths: (curly_group_path_list (path) @import.module)) @import
(latex_include path: (curly_group_path (path) @import.module)) @import
