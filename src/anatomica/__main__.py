from anatomica.cli import main

main()
