// SPDX-License-Identifier: Apache-2.0
/**
 * ESLint for the operator's page: the recommended rules, and whatever could make a name from the
 * fleet into markup or code is forbidden.
 */

import js from "@eslint/js";

const MARKUP = "Names from the fleet must stay text: make elements with el() of dom.js.";

export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      // TypeScript knows the names that a browser has.
      "no-undef": "off",
      "no-unused-vars": ["error", { ignoreRestSiblings: true }],
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-script-url": "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-console": "error",
      "no-restricted-properties": [
        "error",
        ...["innerHTML", "outerHTML", "srcdoc"].map((property) => ({ property, message: MARKUP })),
        ...["insertAdjacentHTML", "setHTMLUnsafe", "createContextualFragment", "parseFromString", "parseHTMLUnsafe"]
          .map((property) => ({ property, message: MARKUP })),
        { object: "document", property: "write", message: MARKUP },
        { object: "document", property: "writeln", message: MARKUP },
        { object: "document", property: "cookie", message: "The page has no cookies." },
        { property: "localStorage", message: "Credentials end with the tab: sessionStorage at most." },
      ],
      "no-restricted-globals": [
        "error",
        { name: "localStorage", message: "Credentials end with the tab: sessionStorage at most." },
      ],
      "no-restricted-syntax": [
        "error",
        { selector: "Property[key.name=/^(innerHTML|outerHTML|srcdoc)$/]", message: MARKUP },
        { selector: "ImportExpression", message: "Every module is loaded with the page." },
      ],
    },
  },
];
