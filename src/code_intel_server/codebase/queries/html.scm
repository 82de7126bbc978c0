(element (start_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name))) (#eq? @_id "id")) @definition.id
(element (self_closing_tag (attribute (attribute_name) @_id (quoted_attribute_value (attribute_value) @name))) (#eq? @_id "id")) @definition.id
(element (start_tag (attribute (attribute_name) @_id (attribute_value) @name)) (#eq? @_id "id")) @definition.id
(script_element (start_tag) @_tag (raw_text) @inject.javascript (#not-match? @_tag "(type|lang|src)="))
(script_element (start_tag) @_tag (raw_text) @inject.javascript (#match? @_tag "(type|lang)=[\"']?(module|text/javascript|application/javascript|text/babel|js|javascript)[\"']?"))
(script_element (start_tag) @_tag (raw_text) @inject.typescript (#match? @_tag "lang=[\"']?(ts|typescript|tsx)[\"']?"))
(style_element (start_tag) @_tag (raw_text) @inject.css (#not-match? @_tag "lang="))
(style_element (start_tag) @_tag (raw_text) @inject.scss (#match? @_tag "lang=[\"']?(scss|less|postcss)"))
(comment) @lead

;;; uses
((script_element (start_tag (attribute (attribute_name) @_src (quoted_attribute_value (attribute_value) @import.module))) @import) (#eq? @_src "src"))
((element (start_tag (tag_name) @_link (attribute (attribute_name) @_href (quoted_attribute_value (attribute_value) @import.module))) @import) (#eq? @_link "link") (#eq? @_href "href"))
