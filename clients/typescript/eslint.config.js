import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist", "src/gen", "scripts", "test/helpers/*.mjs"] },
  tseslint.configs.strictTypeChecked,
  tseslint.configs.stylisticTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ["*.js"] }, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/no-unused-vars": ["error", { varsIgnorePattern: "^_", argsIgnorePattern: "^_" }],
      "@typescript-eslint/only-throw-error": ["error", { allowThrowingUnknown: true }],
    },
  },
  // `once` and the like of test libraries are functions.
  { files: ["test/**"], rules: { "@typescript-eslint/unbound-method": "off" } },
  { files: ["*.js"], extends: [tseslint.configs.disableTypeChecked] },
);
