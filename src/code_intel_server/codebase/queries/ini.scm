(section (section_name (text) @name)) @definition.section
(setting (setting_name) @name) @definition.key
(comment) @lead
