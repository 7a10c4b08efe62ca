package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	openAPI   = "../docs/openapi.yaml"
	schemasAt = "  schemas:\n"
)

// TestOpenAPI keeps components.schemas of docs/openapi.yaml equal to the types of this package: those that the paths
// name, and those that these have as fields. Names and whether a field is required come from its json tag, the
// description from its comment, and what a comment cannot say from a directive in it:
//
//	//api:enum released|expired   the values of a string; of a named type they are its constants
//	//api:maxItems 20             the longest list
//	//api:optional                a body may leave it out
//	//api:schema KeyName          the field's type under another name, with all of it optional
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	head, was, found := strings.Cut(string(raw), schemasAt)
	if !found {
		t.Fatalf("%s has no %q", openAPI, schemasAt)
	}
	p := parsePackage(t)
	var wanted []string
	for _, m := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(head, -1) {
		wanted = append(wanted, m[1])
	}
	schemas := map[string]string{}
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		if schemas[name] != "" {
			continue
		}
		text, uses := p.schema(t, name)
		schemas[name] = text
		wanted = append(wanted, uses...)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		b.WriteString(schemas[name])
	}
	if is := b.String(); *update {
		if err := os.WriteFile(openAPI, []byte(head+schemasAt+is), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if is != was {
		t.Errorf("the schemas of %s are not the types of this package; run go test ./api -run TestOpenAPI -update", openAPI)
	}
}

// typesOf are the types of a package by name, their comments, the string constants of each named type, and the types
// that schemas with all of it optional are of.
type typesOf struct {
	types     map[string]*ast.TypeSpec
	docs      map[string]*ast.CommentGroup
	constants map[string][]string
	partial   map[string]string
}

func parsePackage(t *testing.T) typesOf {
	t.Helper()
	p := typesOf{map[string]*ast.TypeSpec{}, map[string]*ast.CommentGroup{}, map[string][]string{}, map[string]string{}}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range group.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					p.types[s.Name.Name], p.docs[s.Name.Name] = s, group.Doc
				case *ast.ValueSpec:
					of, isNamed := s.Type.(*ast.Ident)
					for _, v := range s.Values {
						if text, isText := v.(*ast.BasicLit); isNamed && isText && text.Kind == token.STRING {
							value, err := strconv.Unquote(text.Value)
							if err != nil {
								t.Fatal(err)
							}
							p.constants[of.Name] = append(p.constants[of.Name], value)
						}
					}
				}
			}
		}
	}
	return p
}

// schema returns the schema of a struct and the names of those that it refers to.
func (p typesOf) schema(t *testing.T, name string) (text string, uses []string) {
	t.Helper()
	of, isPartial := p.partial[name]
	if !isPartial {
		of = name
	}
	if p.types[of] == nil {
		t.Fatalf("%s names the schema %s, which is no type of this package", openAPI, name)
	}
	var required []string
	var properties bytes.Buffer
	p.fields(t, of, isPartial, &properties, &required, &uses)
	var b strings.Builder
	fmt.Fprintf(&b, "    %s:\n", name)
	if doc := prose(p.docs[of]); doc != "" {
		fmt.Fprintf(&b, "      description: %s\n", quoted(doc))
	}
	b.WriteString("      type: object\n      additionalProperties: false\n")
	if len(required) > 0 {
		fmt.Fprintf(&b, "      required: [%s]\n", strings.Join(required, ", "))
	}
	b.WriteString("      properties:\n")
	b.Write(properties.Bytes())
	return b.String(), uses
}

// fields writes the properties of a struct, those of embedded ones in their place. All are optional if isPartial.
func (p typesOf) fields(t *testing.T, name string, isPartial bool, b *bytes.Buffer, required, uses *[]string) {
	t.Helper()
	of, ok := p.types[name].Type.(*ast.StructType)
	if !ok {
		t.Fatalf("%s is no struct", name)
	}
	for _, f := range of.Fields.List {
		if len(f.Names) == 0 {
			p.fields(t, f.Type.(*ast.Ident).Name, isPartial || hasDirective(f.Doc, "optional"), b, required, uses)
			continue
		}
		tag := ""
		if f.Tag != nil {
			whole, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			tag = reflect.StructTag(whole).Get("json")
		}
		key, options, _ := strings.Cut(tag, ",")
		if key == "-" || !f.Names[0].IsExported() {
			continue
		}
		if key == "" {
			t.Fatalf("%s.%s has no json tag", name, f.Names[0].Name)
		}
		isOptional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if !isOptional && !isPartial && !hasDirective(f.Doc, "optional") {
			*required = append(*required, key)
		}
		fmt.Fprintf(b, "        %s:\n", key)
		p.property(t, name+"."+key, f, isOptional, b, uses)
	}
}

// property writes what is below the name of a property.
func (p typesOf) property(t *testing.T, where string, f *ast.Field, isOptional bool, b *bytes.Buffer, uses *[]string) {
	t.Helper()
	say := func(format string, args ...any) { fmt.Fprintf(b, "          "+format+"\n", args...) }
	typ, isNullable := f.Type, false
	if pointer, isPointer := typ.(*ast.StarExpr); isPointer {
		typ, isNullable = pointer.X, !isOptional
	}
	doc := prose(f.Doc)
	flow, ref, ofObject := p.flow(t, where, typ)
	if other := directive(f.Doc, "schema"); other != "" {
		p.partial[other] = ref
		flow = strings.Replace(flow, "/"+ref+`"`, "/"+other+`"`, 1)
		ref = other
	}
	if ref != "" {
		*uses = append(*uses, ref)
	}
	switch {
	case ofObject && ref != "" && (isNullable || doc != ""):
		if isNullable {
			say("nullable: true")
		}
		say("allOf: [%s]", "{"+flow+"}")
	case flow == "": // any JSON
		isNullable = true
		say("nullable: true")
	default:
		say("%s", flow)
		if isNullable {
			say("nullable: true")
		}
	}
	if n := directive(f.Doc, "maxItems"); n != "" {
		say("maxItems: %s", n)
	}
	values := strings.Split(directive(f.Doc, "enum"), "|")
	if named, isNamed := typ.(*ast.Ident); isNamed && len(p.constants[named.Name]) > 0 {
		values = p.constants[named.Name]
	}
	if directive(f.Doc, "enum") != "" || len(values) > 1 {
		list := make([]string, 0, len(values))
		for _, v := range values {
			list = append(list, quoted(v))
		}
		say("enum: [%s]", strings.Join(list, ", "))
	}
	if doc != "" {
		say("description: %s", quoted(doc))
	}
}

// flow is a type as the lines of a YAML mapping, the schema that it refers to, and whether it is that alone.
func (p typesOf) flow(t *testing.T, where string, typ ast.Expr) (lines, ref string, isRef bool) {
	t.Helper()
	switch typ := typ.(type) {
	case *ast.Ident:
		switch typ.Name {
		case "string":
			return "type: string", "", false
		case "bool":
			return "type: boolean", "", false
		case "int", "int64":
			return "type: integer\n          format: int64", "", false
		case "float64":
			return "type: number", "", false
		case "any":
			return "", "", false
		}
		if of := p.types[typ.Name]; of != nil {
			if _, isStruct := of.Type.(*ast.StructType); isStruct {
				return `$ref: "#/components/schemas/` + typ.Name + `"`, typ.Name, true
			}
			return p.flow(t, where, of.Type)
		}
	case *ast.SelectorExpr:
		switch typ.X.(*ast.Ident).Name + "." + typ.Sel.Name {
		case "time.Time":
			return "type: string\n          format: date-time", "", false
		case "json.RawMessage":
			return "", "", false
		}
	case *ast.ArrayType:
		of, ref, _ := p.flow(t, where, typ.Elt)
		return "type: array\n          items: {" + inline(of) + "}", ref, false
	case *ast.MapType:
		of, ref, _ := p.flow(t, where, typ.Value)
		return "type: object\n          additionalProperties: {" + inline(of) + "}", ref, false
	}
	t.Fatalf("%s: TestOpenAPI knows no schema of its type", where)
	return "", "", false
}

// inline has the lines of a mapping on one line.
func inline(lines string) string { return strings.Join(strings.Split(lines, "\n          "), ", ") }

// prose is a comment as one line, without its directives.
func prose(doc *ast.CommentGroup) string {
	if doc == nil {
		return ""
	}
	return strings.Join(strings.Fields(doc.Text()), " ")
}

// directive is what follows //api:NAME in a comment; "" without it.
func directive(doc *ast.CommentGroup, name string) string {
	if doc == nil {
		return ""
	}
	for _, c := range doc.List {
		if text, found := strings.CutPrefix(c.Text, "//api:"+name+" "); found {
			return text
		}
	}
	return ""
}

// hasDirective reports whether a comment has the line //api:NAME.
func hasDirective(doc *ast.CommentGroup, name string) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return c.Text == "//api:"+name })
}

// quoted is a text as YAML and JSON quote it.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
