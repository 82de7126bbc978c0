(section (title) @name) @definition.heading @flat
(comment) @lead
