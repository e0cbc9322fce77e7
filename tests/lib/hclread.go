// SPDX-License-Identifier: Apache-2.0

// Reads a file of Terraform with the parser that Terraform itself uses, and
// prints the default of each variable: name, tab, value. Exit code 1 and the
// reason where it is no HCL.
package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

func main() {
	file, problems := hclparse.NewParser().ParseHCLFile(os.Args[1])
	if problems.HasErrors() {
		fmt.Println(problems.Error())
		os.Exit(1)
	}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		attribute, has := block.Body.Attributes["default"]
		if block.Type != "variable" || !has {
			continue
		}
		value, problems := attribute.Expr.Value(nil)
		text, err := convert.Convert(value, cty.String)
		if problems.HasErrors() || err != nil {
			fmt.Println(problems.Error(), err)
			os.Exit(1)
		}
		fmt.Printf("%s\t%s\n", block.Labels[0], text.AsString())
	}
}
