// What javac's parser says of the files named on stdin: one line of JSON a file,
// {path, definitions: [[kind, qualified name, line]], names: [[byte, name, role]]}. See uses_vs_parsers.py.
import com.sun.source.tree.*;
import com.sun.source.util.*;
import com.sun.tools.javac.tree.JCTree;
import java.io.*;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;
import javax.lang.model.element.Modifier;
import javax.tools.*;

public class Names {
    static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();
    static final Pattern WORD = Pattern.compile("[\\w$]+");

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        for (String path; (path = lines.readLine()) != null; ) {
            // Read as Latin-1, a character is a byte.
            String text = new String(Files.readAllBytes(Path.of(path)), StandardCharsets.ISO_8859_1);
            DiagnosticCollector<JavaFileObject> problems = new DiagnosticCollector<>();
            JavaFileObject file = new SimpleJavaFileObject(URI.create("string:///A.java"), JavaFileObject.Kind.SOURCE) {
                @Override public CharSequence getCharContent(boolean ignored) { return text; }
            };
            JavacTask task = (JavacTask) COMPILER.getTask(null, null, problems, List.of("-proc:none"), null, List.of(file));
            CompilationUnitTree unit = task.parse().iterator().next();
            if (problems.getDiagnostics().stream().anyMatch(one -> one.getKind() == Diagnostic.Kind.ERROR)) continue;
            Reader reader = new Reader(text, unit, Trees.instance(task).getSourcePositions());
            reader.scan(unit, null);
            out.println("{\"path\": \"" + path + "\", \"definitions\": [" + String.join(", ", reader.definitions)
                + "], \"names\": [" + String.join(", ", reader.names.values()) + "]}");
        }
        out.flush();
    }

    static class Reader extends TreeScanner<Void, Void> {
        final String text;
        final CompilationUnitTree unit;
        final SourcePositions places;
        final List<String> definitions = new ArrayList<>();
        final Map<Integer, String> names = new TreeMap<>();
        String scope = "";
        Tree.Kind around = Tree.Kind.CLASS;

        Reader(String text, CompilationUnitTree unit, SourcePositions places) {
            this.text = text;
            this.unit = unit;
            this.places = places;
        }

        void tell(int at, String name, String role) {
            if (at >= 0 && text.startsWith(name, at)) names.putIfAbsent(at, "[" + at + ", \"" + name + "\", \"" + role + "\"]");
        }

        int find(String name, int from) {
            Matcher found = Pattern.compile("(?<![\\w$])" + Pattern.quote(name) + "(?![\\w$])").matcher(text);
            return from >= 0 && found.find(from) ? found.start() : -1;
        }

        int start(Tree tree) { return (int) places.getStartPosition(unit, tree); }

        int end(Tree tree) { return (int) places.getEndPosition(unit, tree); }

        String define(String kind, String name, int at) {
            String qualified = scope.isEmpty() ? name : scope + "." + name;
            tell(at + name.lastIndexOf('.') + 1, name.substring(name.lastIndexOf('.') + 1), "definition");
            definitions.add("[\"" + kind + "\", \"" + qualified + "\", " + unit.getLineMap().getLineNumber(at) + "]");
            return qualified;
        }

        void within(String inner, Runnable what) {
            String outer = scope;
            scope = inner;
            what.run();
            scope = outer;
        }

        void words(Tree tree, String role) {
            Matcher words = WORD.matcher(text.substring(start(tree), end(tree)));
            while (words.find()) tell(start(tree) + words.start(), words.group(), role);
        }

        void typed(Tree tree) {
            if (tree instanceof IdentifierTree one) tell(start(one), one.getName().toString(), "type");
            if (tree instanceof MemberSelectTree one) {
                tell(end(one) - one.getIdentifier().length(), one.getIdentifier().toString(), "type");
                words(one.getExpression(), "other");
            }
            if (tree instanceof ArrayTypeTree one) typed(one.getType());
            if (tree instanceof AnnotatedTypeTree one) typed(one.getUnderlyingType());
            if (tree instanceof UnionTypeTree one) one.getTypeAlternatives().forEach(this::typed);
            if (tree instanceof IntersectionTypeTree one) one.getBounds().forEach(this::typed);
            if (tree instanceof WildcardTree one) typed(one.getBound());
            if (tree instanceof ParameterizedTypeTree one) {
                typed(one.getType());
                one.getTypeArguments().forEach(this::typed);
            }
        }

        void called(Tree tree, boolean made) {
            if (tree instanceof IdentifierTree one) tell(start(one), one.getName().toString(), "call");
            if (tree instanceof MemberSelectTree one) {
                tell(end(one) - one.getIdentifier().length(), one.getIdentifier().toString(), "call");
                if (made) words(one.getExpression(), "other");
            }
            if (tree instanceof AnnotatedTypeTree one) called(one.getUnderlyingType(), made);
            if (tree instanceof ParameterizedTypeTree one) {
                called(one.getType(), made);
                one.getTypeArguments().forEach(this::typed);
            }
        }

        @Override public Void visitPackage(PackageTree tree, Void none) {
            scan(tree.getAnnotations(), none);
            String name = text.substring(start(tree.getPackageName()), end(tree.getPackageName()));
            define("module", name, end(tree.getPackageName()) - name.length());
            words(tree.getPackageName(), "other");
            return null;
        }

        @Override public Void visitModule(ModuleTree tree, Void none) {
            String name = text.substring(start(tree.getName()), end(tree.getName()));
            define("module", name, start(tree.getName()));
            words(tree, "other");
            return null;
        }

        @Override public Void visitImport(ImportTree tree, Void none) {
            words(tree, "import");
            return null;
        }

        @Override public Void visitClass(ClassTree tree, Void none) {
            scan(tree.getModifiers(), none);
            typed(tree.getExtendsClause());
            tree.getImplementsClause().forEach(this::typed);
            tree.getPermitsClause().forEach(this::typed);
            String name = tree.getSimpleName().toString();
            Tree.Kind outer = around;
            around = tree.getKind();
            String kind = switch (around) {
                case INTERFACE, ANNOTATION_TYPE -> "interface";
                case ENUM -> "enum";
                default -> "class";
            };
            int from = tree.getModifiers() == null ? start(tree) : Math.max(start(tree), end(tree.getModifiers()));
            String inner = name.isEmpty() ? scope : define(kind, name, find(name, from));
            within(inner, () -> {
                scan(tree.getTypeParameters(), none);
                scan(tree.getExtendsClause(), none);
                scan(tree.getImplementsClause(), none);
                scan(tree.getPermitsClause(), none);
                for (Tree member : tree.getMembers()) {
                    if (member instanceof VariableTree field) {
                        boolean constant = field.toString().startsWith("/*public static final*/") && around == Tree.Kind.ENUM;
                        boolean fixed = around == Tree.Kind.INTERFACE || around == Tree.Kind.ANNOTATION_TYPE;
                        String own = define(constant ? "member" : fixed ? "constant" : "field", field.getName().toString(), ((JCTree) field).pos);
                        within(own, () -> {
                            if (constant) enumConstant((NewClassTree) field.getInitializer());
                            else variable(field);
                        });
                    } else scan(member, none);
                }
            });
            around = outer;
            return null;
        }

        void enumConstant(NewClassTree made) {
            scan(made.getArguments(), null);
            if (made.getClassBody() != null) for (Tree member : made.getClassBody().getMembers()) {
                if (member instanceof VariableTree field) {
                    within(define("field", field.getName().toString(), ((JCTree) field).pos), () -> variable(field));
                } else scan(member, null);
            }
        }

        void variable(VariableTree tree) {
            typed(tree.getType());
            super.visitVariable(tree, null);
        }

        @Override public Void visitVariable(VariableTree tree, Void none) {
            tell(((JCTree) tree).pos, tree.getName().toString(), "other");
            variable(tree);
            return null;
        }

        @Override public Void visitMethod(MethodTree tree, Void none) {
            typed(tree.getReturnType());
            tree.getThrows().forEach(this::typed);
            boolean constructor = tree.getReturnType() == null;
            String name = constructor ? scope.substring(scope.lastIndexOf('.') + 1) : tree.getName().toString();
            String inner = define(constructor ? "constructor" : "method", name, ((JCTree) tree).pos);
            within(inner, () -> super.visitMethod(tree, none));
            return null;
        }

        @Override public Void visitTypeParameter(TypeParameterTree tree, Void none) {
            tell(find(tree.getName().toString(), start(tree)), tree.getName().toString(), "other");
            tree.getBounds().forEach(this::typed);
            return super.visitTypeParameter(tree, none);
        }

        @Override public Void visitParameterizedType(ParameterizedTypeTree tree, Void none) {
            typed(tree);
            return super.visitParameterizedType(tree, none);
        }

        @Override public Void visitTypeCast(TypeCastTree tree, Void none) {
            typed(tree.getType());
            return super.visitTypeCast(tree, none);
        }

        @Override public Void visitInstanceOf(InstanceOfTree tree, Void none) {
            typed(tree.getType());
            return super.visitInstanceOf(tree, none);
        }

        @Override public Void visitNewArray(NewArrayTree tree, Void none) {
            typed(tree.getType());
            return super.visitNewArray(tree, none);
        }

        @Override public Void visitNewClass(NewClassTree tree, Void none) {
            called(tree.getIdentifier(), true);
            return super.visitNewClass(tree, none);
        }

        @Override public Void visitMethodInvocation(MethodInvocationTree tree, Void none) {
            called(tree.getMethodSelect(), false);
            tree.getTypeArguments().forEach(this::typed);
            return super.visitMethodInvocation(tree, none);
        }

        @Override public Void visitAnnotation(AnnotationTree tree, Void none) {
            typed(tree.getAnnotationType());
            return super.visitAnnotation(tree, none);
        }

        @Override public Void visitMemberReference(MemberReferenceTree tree, Void none) {
            if (tree.getMode() == MemberReferenceTree.ReferenceMode.NEW) called(tree.getQualifierExpression(), true);
            else
                tell(end(tree) - tree.getName().length(), tree.getName().toString(), "call");
            return super.visitMemberReference(tree, none);
        }

        @Override public Void visitMemberSelect(MemberSelectTree tree, Void none) {
            String name = tree.getIdentifier().toString();
            if (name.equals("class")) typed(tree.getExpression());
            tell(end(tree) - name.length(), name, "attribute");
            return super.visitMemberSelect(tree, none);
        }

        @Override public Void visitIdentifier(IdentifierTree tree, Void none) {
            tell(start(tree), tree.getName().toString(), "other");
            return null;
        }

        @Override public Void visitLabeledStatement(LabeledStatementTree tree, Void none) {
            tell(start(tree), tree.getLabel().toString(), "other");
            return super.visitLabeledStatement(tree, none);
        }

        @Override public Void visitBreak(BreakTree tree, Void none) {
            if (tree.getLabel() != null) tell(find(tree.getLabel().toString(), start(tree)), tree.getLabel().toString(), "other");
            return null;
        }

        @Override public Void visitContinue(ContinueTree tree, Void none) {
            if (tree.getLabel() != null) tell(find(tree.getLabel().toString(), start(tree)), tree.getLabel().toString(), "other");
            return null;
        }
    }
}
